// The program of the thread that builds indexes: binds the real disk.
import { openNodeFolder } from "../ports/node/ports.ts";
import { doRequests } from "../ports/node/thread-side.ts";
import { doIndexRequest, type IndexRequest } from "./index/index-thread.ts";

doRequests<IndexRequest>(async (request, pause) => {
  const { disk } = await openNodeFolder(request.directory);
  await doIndexRequest(disk, request, pause);
});
