// Bucket settings that the gateway does not support. Reading one returns the state of a bucket
// without the setting. A put is refused by name, unless it asks for exactly that state.
import { xmlBody } from "../../body/small-document.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { S3Error, type S3ErrorCode } from "../../http/s3-error.ts";
import { malformed, type XmlElement } from "../../http/xml-in.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";

function answering(name: string, root: string, content: XmlContent): Operation {
  return operation(name, "read", async (request, service) => {
    await bucketOf(request, service);
    return xmlAnswer(root, content);
  });
}

function absent(name: string, code: S3ErrorCode): Operation {
  return operation(name, "read", async (request, service) => {
    await bucketOf(request, service);
    throw new S3Error(code);
  });
}

/** Succeeds: there is nothing to delete. */
function removing(name: string): Operation {
  return operation(name, "manage", async (request, service) => {
    await bucketOf(request, service);
    return emptyAnswer(204);
  });
}

/**
 * `isUnset` is true if the document asks for the state without the setting. Throws NotImplemented
 * otherwise.
 */
function putting(name: string, root: string, isUnset: (root: XmlElement) => boolean): Operation {
  return operation(name, "manage", async (request, service) => {
    await bucketOf(request, service);
    if (isUnset(await xmlBody(request, root))) return emptyAnswer();
    throw new S3Error("NotImplemented", { message: `${name} is not implemented.` });
  });
}

const isEmpty = ({ children }: XmlElement): boolean => children.length === 0;

/** Throws MalformedXML unless the text is one of the words. True for the first of them. */
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
