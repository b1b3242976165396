// The access log entry of a request, also used for metrics.

/** The facts about a request that the gateway learns while it processes it. */
export interface AccessFacts {
  /** The operation, as AWS names it: "PutObject". Absent if the request names none. */
  readonly operation?: string;
  /** The key pair that signed the request. Absent for an anonymous request. */
  readonly accessKeyId?: string;
}

/** A request and its answer, for an access log. */
export interface S3AccessEntry extends AccessFacts {
  /** The id of the request, which the client receives as `x-amz-request-id`. */
  readonly id: string;
  /** When the request arrived. */
  readonly at: Date;
  /** Address of the client. */
  readonly remote: string;
  /** HTTP method. */
  readonly method: string;
  /** Path and query. The signature of a presigned URL is removed, because it could be used again. */
  readonly target: string;
  /** HTTP status of the answer. */
  readonly status: number;
  /** S3 error code, such as "NoSuchKey". Absent if the request succeeded. */
  readonly code?: string;
  /** Size of the body of the request in bytes, as the client declared it. */
  readonly bytesIn: number;
  /** Size of the body of the answer in bytes, as far as it was sent. */
  readonly bytesOut: number;
  /** How long the request took. */
  readonly durationMs: number;
  /** False if the client disconnected, or was disconnected, before it had the whole answer. */
  readonly isWhole: boolean;
  /** The internal error of the gateway, for its operator. The client never receives it. */
  readonly error?: unknown;
}

const secrets = /\b(X-Amz-Signature|X-Amz-Security-Token|Signature)=[^&]*/gi;

export function withoutSignature(target: string): string {
  return target.replaceAll(secrets, "$1=-");
}
