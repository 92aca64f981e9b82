/** PostgreSQL keeps any text but NUL and half a surrogate pair, and what machines write to us may hold both. */

export function toJson(value: unknown): string {
  return JSON.stringify(value).replace(/\\\\|\\u0000|\\ud[89a-f][0-9a-f]{2}/g, (found) => {
    if (found === '\\\\') return found;
    return found === '\\u0000' ? '' : '\ufffd';
  });
}

export function toText(text: string): string {
  return text.replaceAll('\0', '');
}
