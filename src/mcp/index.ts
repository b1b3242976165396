// The subpath "holdfast/mcp": agents share a store by the Model Context Protocol, and none overwrites
// what it has not seen.
//
//   import { serveMcp } from "holdfast/mcp";
//   await using store = await openStore("/mnt/shop", { name: "ada" });
//   await serveMcp(store);
//
// It needs the packages @modelcontextprotocol/server and zod beside Holdfast; the command
// `holdfast mcp` has both in it.
export { serveMcp, type ServeMcpOptions } from "./stdio.ts";
export { createMcpServer, type McpOptions, type Workplace } from "./server.ts";
export { toolNames, type ToolName } from "./tool.ts";
