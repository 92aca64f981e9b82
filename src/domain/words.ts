/** Seven digits of a commit are how people name it. */
export function short(commit: string): string {
  return commit.slice(0, 7);
}
