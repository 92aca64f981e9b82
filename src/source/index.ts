/**
 * Git, asked as little as possible: what a ref points at, and for a builder one commit's tree. It never prompts, never
 * runs hooks, never follows a protocol that was not named, and never shows a credential.
 */

export { gitHostOf, parseAddress } from './address';
export { checkoutCommit } from './checkout';
export { readRef } from './refs';
