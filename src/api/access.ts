import { declareNode, ensureNodeAccount, type Link, type Management, removeAccount, removeNode } from '../link';
import type { NodeAccess } from './deps';

export interface AccessDeps {
  readonly link: Link;
  readonly management: () => Promise<Management>;
  /** As hosts reach them. */
  readonly amqpUrl: string;
  readonly registryUrl: string;
  /** By which hosts know a declaration of this mesh. */
  readonly meshPublicKey: string;
}

/** Each node has an exchange, a queue and an account of its own on the broker. */
export function brokerAccess({ link, management, amqpUrl, registryUrl, meshPublicKey }: AccessDeps): NodeAccess {
  return {
    async make(node) {
      await declareNode(link, node);
      const { user, password } = await ensureNodeAccount(await management(), node);
      const url = new URL(amqpUrl);
      url.username = encodeURIComponent(user);
      url.password = encodeURIComponent(password);
      return { user, credentials: { amqpUrl: url.href, registryUrl, meshPublicKey } };
    },
    async remove(node, user) {
      await removeAccount(await management(), user);
      await removeNode(link, node);
    },
  };
}
