// Settings that a bucket cannot have here: what is true of a bucket without them is answered, and
// putting them is refused by name, unless it asks for what is the case anyway.
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { S3Error, type S3ErrorCode } from "../../http/s3-error.ts";
import { malformed, type XmlElement } from "../../http/xml-in.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { bucketOf, operation, xmlBody, type Operation } from "../operation.ts";

function answering(name: string, root: string, content: XmlContent): Operation {
  return operation(name, "read", async (request, place) => {
    await bucketOf(request, place);
    return xmlAnswer(root, content);
  });
}

function absent(name: string, code: S3ErrorCode): Operation {
  return operation(name, "read", async (request, place) => {
    await bucketOf(request, place);
    throw new S3Error(code);
  });
}

/** There is nothing to delete. */
function removing(name: string): Operation {
  return operation(name, "manage", async (request, place) => {
    await bucketOf(request, place);
    return emptyAnswer(204);
  });
}

/** `isUnset` says whether the document asks for no more than there is. NotImplemented. */
function putting(name: string, root: string, isUnset: (root: XmlElement) => boolean): Operation {
  return operation(name, "manage", async (request, place) => {
    await bucketOf(request, place);
    if (isUnset(await xmlBody(request, root))) return emptyAnswer();
    throw new S3Error("NotImplemented", { message: `${name} is not implemented.` });
  });
}

const isEmpty = ({ children }: XmlElement): boolean => children.length === 0;

/** MalformedXML unless it is one of `words`. */
function isWord(root: XmlElement, name: string, [unset, ...others]: readonly [string, ...string[]]): boolean {
  const text = root.getText(name);
  if (text !== unset && !others.includes(text)) throw malformed();
  return text === unset;
}

/** By method and sub-resource. */
export const unset: Readonly<Record<string, Operation>> = {
  "GET accelerate": answering("GetBucketAccelerateConfiguration", "AccelerateConfiguration", {}),
  "PUT accelerate": putting("PutBucketAccelerateConfiguration", "AccelerateConfiguration", (root) =>
    isWord(root, "Status", ["Suspended", "Enabled"]),
  ),
  "GET logging": answering("GetBucketLogging", "BucketLoggingStatus", {}),
  "PUT logging": putting("PutBucketLogging", "BucketLoggingStatus", isEmpty),
  "GET notification": answering("GetBucketNotificationConfiguration", "NotificationConfiguration", {}),
  "PUT notification": putting("PutBucketNotificationConfiguration", "NotificationConfiguration", isEmpty),
  "GET requestPayment": answering("GetBucketRequestPayment", "RequestPaymentConfiguration", { Payer: "BucketOwner" }),
  "PUT requestPayment": putting("PutBucketRequestPayment", "RequestPaymentConfiguration", (root) =>
    isWord(root, "Payer", ["BucketOwner", "Requester"]),
  ),
  "GET encryption": absent("GetBucketEncryption", "ServerSideEncryptionConfigurationNotFoundError"),
  "DELETE encryption": removing("DeleteBucketEncryption"),
  "GET replication": absent("GetBucketReplication", "ReplicationConfigurationNotFoundError"),
  "DELETE replication": removing("DeleteBucketReplication"),
  "GET website": absent("GetBucketWebsite", "NoSuchWebsiteConfiguration"),
  "DELETE website": removing("DeleteBucketWebsite"),
};
