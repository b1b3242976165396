// The least that a durable object server can do: node:http, a file that is synced and renamed. No
// signature, no versions, no listing. A process of its own.
import { createServer } from "node:http";
import { mkdirSync } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { createHash } from "node:crypto";

const [, , directory] = process.argv;
mkdirSync(directory, { recursive: true });
let count = 0;
const pathOf = (url) => `${directory}/${encodeURIComponent(url.split("?", 1)[0])}`;

const server = createServer(async (request, response) => {
  try {
    if (request.method === "GET") return response.end(await readFile(pathOf(request.url)));
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces);
    const staged = `${directory}/.${++count}`;
    const file = await open(staged, "wx");
    await file.writeFile(body);
    await file.sync();
    await file.close();
    await rename(staged, pathOf(request.url));
    response.setHeader("etag", `"${createHash("md5").update(body).digest("hex")}"`);
    response.end();
  } catch (error) {
    response.statusCode = error.code === "ENOENT" ? 404 : 500;
    response.end(String(error));
  }
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })));
