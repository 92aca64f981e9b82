/** Shown beside whatever a service answers. */
export declare const motto: string;
