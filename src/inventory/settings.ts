import type { DeclarePolicy } from '../domain/facts';
import type { Db } from './db';

export interface Mesh {
  readonly name: string;
  readonly declareDefault: DeclarePolicy;
}
export declare function getMesh(db: Db): Promise<Mesh>;
export declare function setSetting(db: Db, key: 'mesh' | 'declareDefault', value: string): Promise<void>;
