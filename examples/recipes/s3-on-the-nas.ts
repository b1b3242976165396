// Two S3 gateways on one folder of a NAS, behind a load balancer. Each would run on a machine of its own.
import { createServer, request } from "node:http";
import { ListObjectVersionsCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { openObjects } from "holdfast/objects";
import { startS3Gateway } from "holdfast/s3";

const folder = process.argv[2] ?? "shared/objects";
const credentials = [{ accessKeyId: "shop", secretAccessKey: "a long secret" }];

// On each machine; as a command: holdfast s3 FOLDER --keys keys.json
const machines = [await openObjects(folder), await openObjects(folder)];
await machines[0]!.createBucket("photos", { versioning: "enabled" });
const gateways = await Promise.all(machines.map((objects) => startS3Gateway(objects, { port: 0, credentials })));

// The load balancer. It passes on method, path, query and headers as they are, Host included: they are signed.
const healthy = [...gateways];
let turn = 0;
const balancer = createServer((incoming, response) => {
  const gateway = healthy[turn++ % healthy.length]!;
  const { method, headers, url } = incoming;
  const outgoing = request(new URL(url ?? "/", gateway.url), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  outgoing.on("error", () => {
    if (healthy.includes(gateway)) healthy.splice(healthy.indexOf(gateway), 1); // a real one asks GET /-/health
    response.writeHead(503).end(); // S3 clients try again
  });
  incoming.pipe(outgoing);
});
await new Promise<void>((resolve) => balancer.listen(0, "127.0.0.1", resolve));

// A client, which knows only the load balancer.
const { port } = balancer.address() as { port: number };
const client = new S3Client({
  endpoint: `http://127.0.0.1:${port}`,
  region: "us-east-1",
  credentials: credentials[0]!,
  forcePathStyle: true,
});
const photo = { Bucket: "photos", Key: "cats/tom.jpg" };
const put = (text: string) => client.send(new PutObjectCommand({ ...photo, Body: text }));
const numbers = (from: number) => Array.from({ length: 8 }, (_, index) => `photo ${from + index}`);

await Promise.all(numbers(1).map(put));
await gateways[0]?.close(); // one machine is switched off
await Promise.all(numbers(9).map(put));

const { Versions } = await client.send(new ListObjectVersionsCommand({ Bucket: "photos" }));
console.log(`16 puts of one key through two gateways, ${Versions?.length} versions`);
const rivals = ["ada", "bob", "eve"].map((name) =>
  client.send(new PutObjectCommand({ Bucket: "photos", Key: "owner", Body: name, IfNoneMatch: "*" })),
);
const ends = await Promise.allSettled(rivals);
console.log(ends.filter(({ status }) => status === "fulfilled").length, "of three conditional puts won");

client.destroy();
balancer.close();
await gateways[1]?.close();
for (const objects of machines) await objects.close();
