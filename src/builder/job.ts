import type { Delivery } from '../link';
import type { BuildRequest, InspectRequest } from '../schema/messages';
import type { Stopper } from './stopper';

/** What the builder is at. */
export interface Job {
  request: InspectRequest | BuildRequest;
  /** All that were delivered for it; those of an earlier channel are dead and do no harm. */
  deliveries: Delivery[];
  stopper: Stopper;
  /** `null` until it is claimed. */
  step: string | null;
  since: Date;
}
