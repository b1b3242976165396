#!/usr/bin/env node
// What `holdfast` is when it is installed. CommonJS, because Node reads a CommonJS program without
// libuv's thread pool and a module with it: the size of the pool counts when it is first used.

// On a share each call of the disk keeps a thread of the pool until the server has answered. With
// four of them, as libuv has by default, a gateway serves four requests at a time.
if (process.argv.slice(2).find((word) => !word.startsWith("-")) === "s3") process.env["UV_THREADPOOL_SIZE"] ??= "64";

void import("./main.ts");
