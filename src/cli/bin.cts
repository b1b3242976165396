#!/usr/bin/env node
// The entry point of the installed `holdfast`. CommonJS, because Node loads a CommonJS program
// without libuv's thread pool and a module with it: the pool size is fixed at its first use.

// On a share each disk call occupies a pool thread until the server replies. With libuv's default
// of four threads, a gateway serves four requests at a time.
if (process.argv.slice(2).find((word) => !word.startsWith("-")) === "s3") process.env["UV_THREADPOOL_SIZE"] ??= "64";

void import("./main.ts");
