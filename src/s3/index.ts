// The subpath "holdfast/s3": an S3 gateway on an object store. Any number of gateways, in any
// number of processes and on any number of machines, may serve one folder: together they are one
// S3.
//
// const objects = await openObjects("/mnt/shop/objects"); const credentials = [{ accessKeyId:
// "shop", secretAccessKey: "…" }]; await using gateway = await startS3Gateway(objects, {
// credentials });
//
// Closing a gateway does not close the object store.
export { startS3Gateway } from "./gateway.ts";
export type { S3Gateway, S3GatewayOptions } from "./gateway.ts";
export type { S3AccessEntry } from "./http/access-entry.ts";
export type { S3Credentials } from "./access/principal.ts";
