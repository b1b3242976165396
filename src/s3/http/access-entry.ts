// What is known about a request when it has been answered: for an access log, and for metrics.

/** What is found out about a request on the way. */
export interface AccessFacts {
  /** As AWS names it: "PutObject". */
  readonly operation?: string;
  /** Of the key pair that has signed it; absent for an anonymous request. */
  readonly accessKeyId?: string;
}

export interface S3AccessEntry extends AccessFacts {
  /** The client has it as x-amz-request-id. */
  readonly id: string;
  readonly at: Date;
  readonly remote: string;
  readonly method: string;
  /** The path and the query. A presigned URL is without its signature: with it, it could be used. */
  readonly target: string;
  readonly status: number;
  /** The code of the error, such as "NoSuchKey". */
  readonly code?: string;
  /** As the client declares it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  /** False if the client went away, or was cut off, before it had the answer. */
  readonly isWhole: boolean;
  /** What went wrong in the gateway itself, for its operator; never told to the client. */
  readonly error?: unknown;
}

const secrets = /\b(X-Amz-Signature|X-Amz-Security-Token|Signature)=[^&]*/gi;

export function withoutSignature(target: string): string {
  return target.replaceAll(secrets, "$1=-");
}
