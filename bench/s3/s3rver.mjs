// The peer: s3rver, as a process of its own. It neither syncs nor keeps versions.
import S3rver from "s3rver";

const [, , directory] = process.argv;
const server = new S3rver({
  port: 0,
  address: "127.0.0.1",
  silent: true,
  directory,
  configureBuckets: [{ name: "bench" }],
});
const { port } = await server.run();
console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
