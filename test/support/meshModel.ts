/**
 * A mesh in memory with the store's rules and no server: modules, commits, edges, closures, effective builds, who settles.
 * Everything but what is effective is worked out from scratch after each event. It is the model that the comparison is
 * held to; the store's SQL is held to the same rules by tests of its own.
 */
import { compare } from '../../src/domain/comparison';
import type { BuildFacts, Comparison, Facts, GraphFacts, InputFacts, Iso, RequestFacts, SettlingInput } from '../../src/domain/facts';
import { neighbours, pathBetween } from '../../src/domain/graph';
import { defaultTimes } from '../../src/domain/times';
import { graph, inStep, inspection, request } from './facts';

export interface Commit {
  readonly id: string;
  /** What its artifact is made from; two commits with the same content make the same artifact of the same inputs. */
  readonly content: number;
  readonly imports: ReadonlyArray<{ readonly of: string; readonly isTest: boolean }>;
  readonly outcome: 'fit' | 'failed' | 'invalid';
}

interface Build {
  readonly request: RequestFacts;
  readonly commit: Commit;
  readonly inputs: readonly InputFacts[];
  verdict: 'fit' | 'failed' | null;
  answeredAt: Iso | null;
}

interface Module {
  readonly name: string;
  /** Its artifact holds nothing of its inputs: a rebuild of it with others is cut off. */
  readonly isOpaque: boolean;
  head: Commit;
  headSince: Iso;
  inspected: Set<string>;
  /** The last valid inspected commit, whose edges are in force. */
  edges: Commit | null;
  requests: RequestFacts[];
  builds: Build[];
  effective: Build | null;
  closure: string | null;
  inputs: InputFacts[];
  staleSince: Iso | null;
  progressAt: Iso;
}

export class MeshModel {
  readonly modules = new Map<string, Module>();
  /** Builds that were taken, by module, since they were last forgotten. */
  readonly taken = new Map<string, number>();
  private clock = Date.parse('2026-11-29T00:00:00.000Z');
  private counter = 0;

  get now(): Iso {
    return new Date(this.clock).toISOString();
  }

  pass(minutes: number): void {
    this.clock += minutes * 60_000;
  }

  add(name: string, head: Commit, isOpaque = false): void {
    this.modules.set(name, {
      ...{ name, isOpaque, head, headSince: this.now, inspected: new Set(), edges: null, requests: [], builds: [], effective: null },
      ...{ closure: null, inputs: [], staleSince: null, progressAt: this.now },
    });
    this.settle();
  }

  /** The tracked ref now points here: a new commit, or one of before after a force-push. */
  move(name: string, head: Commit): void {
    const module = this.of(name);
    if (module.head.id === head.id) return;
    module.head = head;
    module.headSince = this.now;
    module.progressAt = this.now;
    this.settle();
  }

  /** One turn of the module's workflow: compare, act, compare again. */
  turn(name: string): Comparison {
    for (let acts = 0; acts < 6; acts += 1) {
      const found = this.compare(name);
      const module = this.of(name);
      if (found.cancel.length > 0) {
        module.requests = module.requests
          .filter((one) => !found.cancel.includes(one.id) || one.state === 'taken')
          .map((one) => (found.cancel.includes(one.id) ? { ...one, isStopping: true } : one));
      } else if ((found.next.kind === 'inspect' || found.next.kind === 'build') && found.next.requestId === null) {
        this.counter += 1;
        const closure = found.next.kind === 'build' ? found.next.closure : null;
        const opened = request({
          ...{ id: `r${this.counter}`, kind: found.next.kind, commit: found.next.commit, closure, state: 'published' as const },
          ...{ requestedAt: this.now, takenBy: null, takenAt: null, step: null },
        });
        module.requests = [...module.requests, opened];
        if (opened.kind === 'build')
          module.builds.push({ request: opened, commit: module.head, inputs: module.inputs, verdict: null, answeredAt: null });
        module.progressAt = this.now;
      } else {
        return found;
      }
    }
    throw new Error(`${name} does not come to an end of its turn`);
  }

  open(): Array<{ readonly module: string; readonly request: RequestFacts }> {
    return [...this.modules.values()].flatMap(({ name, requests }) => requests.map((one) => ({ module: name, request: one })));
  }

  take(name: string, id: string): void {
    const module = this.of(name);
    module.requests = module.requests.map((one) => {
      if (one.id !== id || one.state === 'taken') return one;
      if (one.kind === 'build') this.taken.set(name, (this.taken.get(name) ?? 0) + 1);
      return { ...one, state: 'taken', takenBy: 'builder-1', takenAt: this.now, step: 'run' };
    });
    module.progressAt = this.now;
  }

  /** A beat of what runs. */
  beat(name: string): void {
    this.of(name).progressAt = this.now;
  }

  answer(name: string, id: string): void {
    const module = this.of(name);
    const found = module.requests.find((one) => one.id === id);
    if (found === undefined) return;
    this.take(name, id);
    module.requests = module.requests.filter((one) => one.id !== id);
    const build = module.builds.find((one) => one.request.id === id);
    if (build === undefined) {
      module.inspected.add(found.commit);
      if (found.commit === module.head.id && module.head.outcome !== 'invalid') module.edges = module.head;
    } else {
      build.verdict = build.commit.outcome === 'failed' ? 'failed' : 'fit';
      build.answeredAt = this.now;
      // A build that was answered begins the waiting anew.
      if (build.commit.id === module.head.id) module.staleSince = null;
    }
    this.settle();
    for (const other of this.modules.values()) if (other.staleSince !== null) other.progressAt = this.now;
  }

  compare(name: string): Comparison {
    return compare(this.facts(name), defaultTimes);
  }

  /** Nothing more happens by itself: answers all that is asked until nobody asks for anything. Answers in the order of `pick`. */
  settleDown(pick: (count: number) => number): void {
    for (let round = 0; round < 2_000; round += 1) {
      for (const name of this.modules.keys()) this.turn(name);
      const open = this.open();
      const chosen = open[pick(open.length)];
      if (chosen === undefined) return;
      this.answer(chosen.module, chosen.request.id);
    }
    throw new Error(`still not at rest: ${this.open().map(({ module }) => module)}`);
  }

  of(name: string): Module {
    const found = this.modules.get(name);
    if (found === undefined) throw new Error(`there is no module ${name}`);
    return found;
  }

  digestOf({ commit, inputs }: Build, isOpaque: boolean): string {
    const used = isOpaque ? [] : inputs.filter((input) => !input.isTest).map((input) => `${input.module}=${input.digest}`);
    return `sha256:${commit.content}(${used.join()})`;
  }

  private isInspected(module: Module): boolean {
    return module.inspected.has(module.head.id);
  }

  private isValid(module: Module): boolean {
    return this.isInspected(module) && module.head.outcome !== 'invalid';
  }

  private newestOf(module: Module): Build | null {
    return module.builds.filter((build) => build.verdict !== null && build.request.closure === module.closure).at(-1) ?? null;
  }

  isSettling(module: Module): boolean {
    if (!this.isInspected(module)) return true;
    return this.isValid(module) && this.newestOf(module) === null;
  }

  private settle(): void {
    for (const module of this.modules.values()) {
      if (this.isValid(module)) module.edges = module.head;
    }
    for (let round = 0; ; round += 1) {
      if (round > 100) throw new Error('what is effective does not come to rest');
      let hasMoved = false;
      for (const module of this.modules.values()) {
        const before = module.closure;
        const inputs = this.isValid(module) ? this.inputsOf(module) : null;
        if (inputs !== null) module.inputs = inputs;
        const listed = (inputs ?? []).map((input) => `${input.module}@${input.digest}`);
        module.closure = inputs === null ? null : `${module.head.id}[${listed.join(' ')}]`;
        if (before !== module.closure) module.progressAt = this.now;
        const effective = this.effectiveOf(module);
        hasMoved ||= effective !== module.effective;
        module.effective = effective;
      }
      if (!hasMoved) break;
    }
    for (const module of this.modules.values()) {
      const isStale = this.isSettling(module);
      module.staleSince = isStale ? (module.staleSince ?? this.now) : null;
    }
  }

  private effectiveOf(module: Module): Build | null {
    if (this.newestOf(module)?.verdict === 'fit')
      return module.builds.find((one) => one.verdict === 'fit' && one.request.closure === module.closure) ?? null;
    return module.builds.filter((one) => one.verdict === 'fit' && one.commit.id === module.head.id).at(-1) ?? module.effective;
  }

  /** The closure's inputs; null while a direct one has no artifact. */
  private inputsOf(module: Module): InputFacts[] | null {
    const found = new Map<string, InputFacts>();
    const add = (name: string, isTest: boolean): boolean => {
      const input = this.of(name);
      if (input.effective === null) return false;
      const known = found.get(name);
      if (known !== undefined && (!known.isTest || isTest)) return true;
      found.set(name, { module: name, artifact: 'go', digest: this.digestOf(input.effective, input.isOpaque), isTest });
      for (const used of input.effective.inputs) if (!used.isTest) add(used.module, isTest);
      return true;
    };
    for (const { of, isTest } of module.head.imports) if (!add(of, isTest)) return null;
    return [...found.values()].sort((a, b) => (a.module < b.module ? -1 : 1));
  }

  private facts(name: string): Facts {
    const module = this.of(name);
    const { head, headSince, effective } = module;
    const newest = this.newestOf(module);
    return inStep({
      module: name,
      now: this.now,
      version: this.counter,
      source: { repository: `file:///${name}.git`, ref: 'refs/heads/main', head: { commit: head.id, since: headSince }, trouble: null },
      inspection: this.isInspected(module)
        ? inspection({ commit: head.id, outcome: head.outcome === 'invalid' ? 'invalid' : 'valid', answeredAt: headSince })
        : null,
      requests: module.requests,
      closure: module.closure,
      headBuild: newest === null ? null : buildFacts(newest),
      effective: effective === null ? null : buildFacts(effective),
      graph: this.graphOf(module),
      placements: [],
    });
  }

  private graphOf(module: Module): GraphFacts {
    const built = module.builds.filter((build) => build.verdict !== null && build.commit.id === module.head.id).at(-1);
    const known = { inputs: module.inputs, builtInputs: built?.inputs ?? [], staleSince: module.staleSince };
    if (!this.isValid(module) || module.staleSince === null) return graph(known);
    const edges = [...this.modules.values()].flatMap(({ name, edges: commit }) =>
      (commit?.imports ?? []).filter((one) => !one.isTest).map((one) => ({ module: name, input: one.of })),
    );
    const { inputs } = neighbours(edges);
    const settling: SettlingInput[] = [];
    for (const other of this.modules.values()) {
      const path = pathBetween(module.name, other.name, inputs);
      if (path === null || !this.isSettling(other)) continue;
      const open = other.requests.find((one) => one.commit === other.head.id && one.kind === 'build');
      const inspected = open === undefined ? 'waiting' : 'building';
      settling.push({
        ...{
          module: other.name,
          state: this.isInspected(other) ? inspected : 'inspecting',
          takenBy: open?.takenBy ?? null,
        },
        ...{ since: other.staleSince ?? this.now, progressAt: other.progressAt, path },
      });
    }
    const missing = module.head.imports
      .map(({ of }) => this.of(of))
      .filter((input) => input.effective === null)
      .map((input) => ({
        ...{ module: input.name, because: `${input.name} has had no fit build yet` },
        ...{ since: module.staleSince ?? this.now, needsPerson: !this.isSettling(input) },
      }));
    return graph({ ...known, settling, missing });
  }
}

function buildFacts({ request: { id, closure }, commit, verdict, answeredAt }: Build): BuildFacts {
  const reason = verdict === 'failed' ? 'exit status 1' : null;
  return { id, commit: commit.id, closure: closure ?? '', tryNumber: 1, verdict: verdict ?? 'outstanding', reason, answeredAt };
}
