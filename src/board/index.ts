/**
 * The board: a page that reads the API's status and its events, and stores nothing. It is plain HTML, CSS and one script,
 * served as they are written; the script puts every value into the page as text, never as HTML.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Asset {
  readonly type: string;
  readonly text: string;
}

export interface BoardAssets {
  readonly page: Asset;
  readonly login: Asset;
  /** The login form again, after a token that is nobody's. */
  readonly refused: Asset;
  readonly style: Asset;
  readonly script: Asset;
  readonly icon: Asset;
}

export function boardAssets(): BoardAssets {
  const folder = boardFolder();
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
  const html = (text: string): Asset => ({ type: 'text/html; charset=utf-8', text });
  const login = read('login.html');
  return {
    page: html(read('board.html')),
    login: html(login.replace('<!-- refused -->', '')),
    refused: html(login.replace('<!-- refused -->', '<p class="refused" role="alert">This token is nobody’s here.</p>')),
    style: { type: 'text/css; charset=utf-8', text: read('board.css') },
    script: { type: 'text/javascript; charset=utf-8', text: read('board.js') },
    icon: { type: 'image/svg+xml', text: read('favicon.svg') },
  };
}

/** The compiler does not copy pages: they are read where they are written, from the sources and from dist alike. */
function boardFolder(): string {
  let root = __dirname;
  while (!existsSync(join(root, 'package.json')) && dirname(root) !== root) root = dirname(root);
  return join(root, 'src', 'board');
}
