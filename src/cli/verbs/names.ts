import type { Command } from 'commander';
import type { ModuleList, NodeList } from '../../schema/api';
import { api, print } from '../verb';

/** For shell completion: what may stand where a module or a node is named. */
export function names(program: Command): void {
  program.command('names <what>', { hidden: true }).action(async (what: string) => {
    const server = api();
    if (what === 'modules') print((await server.get<ModuleList>('modules')).modules.map((row) => row.module));
    else print((await server.get<NodeList>('nodes')).nodes.map((row) => row.node));
  });
}
