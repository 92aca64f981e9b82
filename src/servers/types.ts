export type ServerName = 'temporal' | 'postgres' | 'rabbitmq' | 'registry';

/** Where the four servers answer. URLs may carry a password: never log them whole. */
export interface ServerAddresses {
  /** host:port of Temporal's frontend */
  temporalAddress: string;
  /** null where an address from outside does not tell it */
  temporalUiUrl: string | null;
  databaseUrl: string;
  amqpUrl: string;
  /** RabbitMQ's management API; null where there is none */
  amqpManagementUrl: string | null;
  registryUrl: string;
}

export interface Servers {
  addresses: ServerAddresses;
  /** Stops what this call started, in order, and leaves no process of it. Safe to call twice. */
  stop(): Promise<void>;
}

export interface StepReporter {
  /** Prints one short line with the step's time when it ends; what is said last is the line's detail. */
  step<T>(title: string, run: (say: (detail: string) => void) => Promise<T>): Promise<T>;
}

/** One server brought up: where it answers, and how it is stopped (nothing to do for one that was found). */
export interface Started<Address> {
  address: Address;
  stop(): Promise<void>;
}
