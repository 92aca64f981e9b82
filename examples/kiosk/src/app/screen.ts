import { motto } from '@example/core';

/** What the screen says; a change of it is seen in every answer. */
export const HEADLINE = 'Open until six';

export interface Screen {
  readonly module: 'kiosk';
  readonly node: string;
  readonly headline: string;
  readonly motto: string;
}

export function screenOf(node: string): Screen {
  return { module: 'kiosk', node, headline: HEADLINE, motto };
}

/** The page a browser shows, with nothing of the node's name taken for markup. */
export function page(screen: Screen): string {
  const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<!doctype html><title>kiosk</title><h1>${escaped(screen.headline)}</h1><p>${escaped(screen.motto)}</p><p>${escaped(screen.node)}</p>`;
}
