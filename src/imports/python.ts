import { nothingFound, type ReadLanguage } from './types';
export const readPython: ReadLanguage = async () => nothingFound;
