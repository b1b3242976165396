// The errors of S3 as AWS words them: a code, a status, and a message for people.
const s3Errors = {
  AccessControlListNotSupported: [400, "The bucket does not allow ACLs"],
  AccessDenied: [403, "Access Denied"],
  AccessForbidden: [403, "CORSResponse: This CORS request is not allowed."],
  AuthorizationHeaderMalformed: [400, "The authorization header that you provided is not valid."],
  AuthorizationQueryParametersError: [400, "The authorization query parameters that you provided are not valid."],
  BadDigest: [400, "The Content-MD5 or checksum value that you specified did not match what the server received."],
  BadRequest: [400, "The request is not valid."],
  BucketAlreadyExists: [409, "The requested bucket name is not available. Select a different name and try again."],
  BucketAlreadyOwnedByYou: [409, "The bucket that you tried to create already exists, and you own it."],
  BucketNotEmpty: [409, "The bucket that you tried to delete is not empty."],
  ConditionalRequestConflict: [
    409,
    "A conflicting operation occurred during the request. Fetch the object and retry the upload.",
  ],
  EntityTooLarge: [400, "Your proposed upload exceeds the maximum allowed object size."],
  EntityTooSmall: [400, "Your proposed upload is smaller than the minimum allowed object size."],
  ExpiredToken: [400, "The provided token has expired."],
  IllegalLocationConstraintException: [400, "The location constraint is not the one of this endpoint."],
  IllegalVersioningConfigurationException: [400, "The versioning configuration specified in the request is not valid."],
  IncompleteBody: [400, "You did not provide the number of bytes specified by the Content-Length HTTP header."],
  InternalError: [500, "An internal error occurred. Try again."],
  InvalidAccessKeyId: [403, "The AWS access key ID that you provided does not exist in our records."],
  InvalidArgument: [400, "Invalid Argument"],
  InvalidBucketAclWithObjectOwnership: [
    400,
    "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
  ],
  InvalidBucketName: [400, "The specified bucket is not valid."],
  InvalidBucketState: [409, "The request is not valid for the current state of the bucket."],
  InvalidChunkSizeError: [403, "Only the last chunk is allowed to have a size less than 8192 bytes"],
  InvalidDigest: [400, "The Content-MD5 or checksum value that you specified is not valid."],
  InvalidLocationConstraint: [400, "The specified location-constraint is not valid"],
  InvalidPart: [
    400,
    "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
  ],
  InvalidPartNumber: [416, "The requested partnumber is not satisfiable"],
  InvalidPartOrder: [400, "The list of parts was not in ascending order. Parts must be ordered by part number."],
  InvalidPolicyDocument: [
    400,
    "The content of the form does not meet the conditions specified in the policy document.",
  ],
  InvalidRange: [416, "The requested range is not satisfiable"],
  InvalidRequest: [400, "The request is not valid."],
  InvalidRetentionPeriod: [400, "Default retention period must be a positive integer value."],
  InvalidStorageClass: [400, "The storage class you specified is not valid"],
  InvalidTag: [400, "The tag provided was not a valid tag."],
  InvalidURI: [400, "Couldn't parse the specified URI."],
  KeyTooLongError: [400, "Your key is too long."],
  MalformedACLError: [400, "The XML you provided was not well-formed or did not validate against our published schema"],
  MalformedPOSTRequest: [400, "The body of your POST request is not well-formed multipart/form-data."],
  MalformedPolicy: [400, "Your policy contains a principal or statement that is not valid."],
  MalformedTrailerError: [
    400,
    "The request contained trailing data that was not well-formed or did not conform to our published schema.",
  ],
  MalformedXML: [400, "The XML you provided was not well-formed or did not validate against our published schema"],
  MaxMessageLengthExceeded: [400, "Your request was too large."],
  MaxPostPreDataLengthExceeded: [400, "Your POST request fields preceding the upload file were too large."],
  MetadataTooLarge: [400, "Your metadata headers exceed the maximum allowed metadata size."],
  MethodNotAllowed: [405, "The specified method is not allowed against this resource."],
  MissingContentLength: [411, "You must provide the Content-Length HTTP header."],
  MissingSecurityHeader: [400, "Your request is missing a required header."],
  NoSuchBucket: [404, "The specified bucket does not exist"],
  NoSuchBucketPolicy: [404, "The bucket policy does not exist"],
  NoSuchCORSConfiguration: [404, "The CORS configuration does not exist"],
  NoSuchKey: [404, "The specified key does not exist."],
  NoSuchLifecycleConfiguration: [404, "The lifecycle configuration does not exist"],
  NoSuchObjectLockConfiguration: [404, "The specified object does not have a ObjectLock configuration"],
  NoSuchPublicAccessBlockConfiguration: [404, "The public access block configuration was not found"],
  NoSuchTagSet: [404, "The TagSet does not exist"],
  NoSuchUpload: [
    404,
    "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.",
  ],
  NoSuchVersion: [404, "The specified version does not exist."],
  NoSuchWebsiteConfiguration: [404, "The specified bucket does not have a website configuration"],
  NotImplemented: [501, "A header or query that you provided implies functionality that is not implemented."],
  NotModified: [304, "Not Modified"],
  ObjectLockConfigurationNotFoundError: [404, "Object Lock configuration does not exist for this bucket"],
  OwnershipControlsNotFoundError: [404, "The bucket ownership controls were not found"],
  PreconditionFailed: [412, "At least one of the pre-conditions you specified did not hold"],
  ReplicationConfigurationNotFoundError: [404, "The replication configuration was not found"],
  RequestTimeTooSkewed: [403, "The difference between the request time and the server's time is too large."],
  RequestTimeout: [
    400,
    "Your socket connection to the server was not read from or written to within the timeout period.",
  ],
  ServerSideEncryptionConfigurationNotFoundError: [404, "The server side encryption configuration was not found"],
  SignatureDoesNotMatch: [
    403,
    "The request signature that the server calculated does not match the signature that you provided. Check your secret access key and signing method.",
  ],
  SlowDown: [503, "Please reduce your request rate."],
  UnresolvableGrantByEmailAddress: [400, "The e-mail address you provided does not match any account on record."],
  XAmzContentSHA256Mismatch: [400, "The provided 'x-amz-content-sha256' header does not match what was computed."],
} as const;

export type S3ErrorCode = keyof typeof s3Errors;

/** An error response to the client. `details` become elements beside the message. */
export class S3Error extends Error {
  override readonly name: string = "S3Error";
  readonly code: S3ErrorCode;
  readonly status: number;
  readonly details: Readonly<Record<string, string>>;
  /** Headers of the response, such as the version id of a delete marker. */
  readonly headers: Readonly<Record<string, string>>;
  /** True if the operator should see the cause, even though it was right to refuse the client. */
  readonly isReported: boolean;

  constructor(
    code: S3ErrorCode,
    {
      message,
      details = {},
      headers = {},
      cause,
      isReported = false,
    }: {
      readonly message?: string;
      readonly details?: Readonly<Record<string, string>>;
      readonly headers?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
      readonly isReported?: boolean;
    } = {},
  ) {
    const [status, usual] = s3Errors[code];
    super(message ?? usual, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.details = details;
    this.headers = headers;
    this.isReported = isReported;
  }

  /** Returns a copy with more headers. */
  with(headers: Readonly<Record<string, string>>): S3Error {
    const { code, message, details, cause, isReported } = this;
    return new S3Error(code, { message, details, headers: { ...headers, ...this.headers }, cause, isReported });
  }
}
