/**
 * The broker: topology, connections that come back by themselves, confirmed publishing, consumers that outlive a
 * connection, signing and sealing. Nothing is reported as sent that the broker did not confirm, and nothing is
 * acknowledged on a channel other than its own.
 */
export { accountsOf, ensureBuilderAccount, ensureNodeAccount, findManagement, type Management, nodeAccount, removeAccount } from './accounts';
export { canonicalDigest } from './canonical';
export { UnroutableError, VerificationError } from './errors';
export { openLink } from './link';
export { createSealing, generateSealKeyPair, openOnNode, sealKeyOf, sealToNode } from './nodeSealing';
export { keptMeshKey, keptSigningKey, openWithMeshKey, sealWithMeshKey } from './sealing';
export { generateKeyPair, type KeyPair, publicKeyOf, sign, verify } from './signing';
export { declareNode, declarePlatform, declareTopology, EXCHANGES, nodeExchange, nodeQueue, QUEUES, ROUTES, removeNode } from './topology';
export type { Consumer, Delivery, Link } from './types';
