// A browser uploads a photo straight to the object store, with a URL that the web server has signed.
import { randomUUID } from "node:crypto";
import { HeadObjectCommand, PutBucketCorsCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { openObjects } from "holdfast/objects";
import { startS3Gateway } from "holdfast/s3";

const origin = "https://shop.example"; // of the page

// The gateway. Its address must be one that browsers reach.
const objects = await openObjects(process.argv[2] ?? "shared/objects");
await objects.createBucket("photos");
const credentials = { accessKeyId: "shop", secretAccessKey: "a long secret" };
const gateway = await startS3Gateway(objects, { port: 0, credentials: [credentials] });

// On the web server. Only it has the key pair.
const client = new S3Client({
  endpoint: gateway.url,
  region: "us-east-1",
  credentials,
  forcePathStyle: true,
  requestChecksumCalculation: "WHEN_REQUIRED", // otherwise the URL would demand the checksum of an empty body
});
const rule = { AllowedOrigins: [origin], AllowedMethods: ["PUT"], AllowedHeaders: ["content-type"] };
await client.send(new PutBucketCorsCommand({ Bucket: "photos", CORSConfiguration: { CORSRules: [rule] } }));

async function allowUpload(type: string): Promise<{ key: string; url: string }> {
  const key = `uploads/${randomUUID()}`; // a name of the server: no visitor overwrites the photo of another
  const command = new PutObjectCommand({ Bucket: "photos", Key: key, ContentType: type });
  return {
    key,
    url: await getSignedUrl(client, command, { expiresIn: 300, signableHeaders: new Set(["content-type"]) }),
  };
}

// In the browser, which sends Origin by itself, and asks first whether it may.
async function upload(url: string, body: string, type: string, from = origin): Promise<number> {
  const asking = { origin: from, "access-control-request-method": "PUT", "access-control-request-headers": "content-type" }; // prettier-ignore
  const preflight = await fetch(url, { method: "OPTIONS", headers: asking });
  if (!preflight.ok) return preflight.status;
  return (await fetch(url, { method: "PUT", body, headers: { "content-type": type, origin: from } })).status;
}

const { key, url } = await allowUpload("image/png");
console.log("from another site:", await upload(url, "miaow", "image/png", "https://evil.example"));
console.log("as another type:", await upload(url, "miaow", "text/html"));
console.log("from the page:", await upload(url, "miaow", "image/png"));
const { ContentLength, ContentType } = await client.send(new HeadObjectCommand({ Bucket: "photos", Key: key }));
console.log("stored:", ContentLength, "bytes of", ContentType); // the web server checks before it believes the browser

client.destroy();
await gateway.close();
await objects.close();
