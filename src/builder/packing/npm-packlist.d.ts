declare module 'npm-packlist' {
  interface PackageTree {
    path: string;
    package: object;
    isProjectRoot: boolean;
    edgesOut: ReadonlyMap<string, never>;
  }
  export default function packlist(tree: PackageTree): Promise<string[]>;
}
