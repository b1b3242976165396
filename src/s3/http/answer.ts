// The response of an operation, and the translation of store errors into S3 errors.
import { isHoldfastError } from "../../index.ts";
import { S3Error, type S3ErrorCode } from "./s3-error.ts";
import { formatXml, type XmlContent } from "./xml-out.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Absent: no body. */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
}

export function xmlAnswer(
  root: string,
  content: XmlContent,
  headers: Readonly<Record<string, string | undefined>> = {},
): Answer {
  return { status: 200, headers: { "content-type": "application/xml", ...headers }, body: formatXml(root, content) };
}

export function emptyAnswer(status = 200, headers: Readonly<Record<string, string | undefined>> = {}): Answer {
  return { status, headers };
}

/**
 * Returns the response for an error, with an error document as its body. A response with status 304
 * has none.
 */
export function errorAnswer(error: S3Error, resource: string, requestId: string): Answer {
  const { code, status, message, details, headers } = error;
  if (status === 304) return { status, headers };
  const content = { Code: code, Message: message, ...details, Resource: resource, RequestId: requestId };
  return {
    status,
    headers: { "content-type": "application/xml", ...headers },
    body: formatXml("Error", content, { isError: true }),
  };
}

/**
 * Errors of a share whose server is unreachable or has just come back. The same request can succeed
 * later.
 */
const unreachable = new Set([
  "EAGAIN",
  "EBUSY",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "EIO",
  "EMFILE",
  "ENETDOWN",
  "ENETUNREACH",
  "ENFILE",
  "ENOTCONN",
  "EREMOTEIO",
  "ESTALE",
  "ETIMEDOUT",
]);

/**
 * Translates an error. An error that is not the client's fault becomes InternalError, whose cause
 * is logged and never sent to the client.
 */
export function asS3Error(error: unknown): S3Error {
  if (error instanceof S3Error) return error;
  const found = findCode(error);
  return found === undefined ? new S3Error("InternalError", { cause: error }) : new S3Error(...found);
}

function findCode(error: unknown): ConstructorParameters<typeof S3Error> | undefined {
  const plain = (
    code: S3ErrorCode,
    details: Readonly<Record<string, string>> = {},
  ): ConstructorParameters<typeof S3Error> => [code, { details, cause: error }];
  if (!isHoldfastError(error)) return undefined;
  switch (error.code) {
    case "NO_SUCH_BUCKET":
      return plain("NoSuchBucket", { BucketName: error.bucket });
    case "BUCKET_EXISTS":
      return plain("BucketAlreadyOwnedByYou", { BucketName: error.bucket });
    case "BUCKET_NOT_EMPTY":
      return plain("BucketNotEmpty", { BucketName: error.bucket });
    case "NO_SUCH_KEY": {
      const headers =
        error.deleteMarker === undefined
          ? {}
          : { "x-amz-delete-marker": "true", "x-amz-version-id": error.deleteMarker };
      return ["NoSuchKey", { details: { Key: error.key }, headers, cause: error }];
    }
    case "NO_SUCH_VERSION":
      return plain("NoSuchVersion", { Key: error.key, VersionId: error.versionId });
    case "NO_SUCH_UPLOAD":
      return plain("NoSuchUpload", { UploadId: error.uploadId });
    case "INVALID_PART":
      return plain("InvalidPart", { PartNumber: String(error.partNumber) });
    case "INVALID_RANGE":
      return [
        "InvalidRange",
        {
          details: { ActualObjectSize: String(error.size) },
          headers: { "content-range": `bytes */${error.size}` },
          cause: error,
        },
      ];
    case "BAD_DIGEST":
      return plain("BadDigest");
    case "PRECONDITION_FAILED":
      // Like S3: If-Match on a missing object is NoSuchKey.
      return error.current === undefined ? plain("NoSuchKey", { Key: error.key }) : plain("PreconditionFailed");
    case "RETAINED":
      return ["AccessDenied", { message: "Access Denied because object protected by object lock.", cause: error }];
    case "INVALID_NAME":
      return plain("InvalidArgument");
    case "TOO_LARGE":
      return plain("EntityTooLarge");
    case "IO_ERROR":
      return unreachable.has(error.errno ?? "") ? plain("SlowDown") : undefined;
    case "DISK_FULL":
    // The folder became read-only or belongs to another user. This does not concern the rights of a
    // key pair.
    case "NO_PERMISSION":
    case "OUTCOME_UNKNOWN":
    case "LOCK_TIMEOUT":
    // The gateway slept past its lease and other processes swept its staged files, so nothing was
    // stored.
    case "LOCK_LOST":
    case "CLOSED":
      return plain("SlowDown");
    default:
      return undefined;
  }
}
