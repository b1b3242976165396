// Starts the bed of real shares: compiles this tree into a folder of its own, so that guests run what is here now and dist/ is left alone.
//   npm run test:shares                           all servers that this machine can have
//   npm run test:shares -- nfs                    one of nfs (Ganesha), knfsd (the kernel's server, in a guest), smb (Samba)
//   npm run test:shares -- smb --only chain       scenarios whose name contains the word
//   npm run test:shares -- --fault paused         faults whose name contains the word
//   npm run test:shares -- --minutes 5            how long each scenario with load goes on (each fault comes at least once); default 0.25
//   npm run test:shares -- --repeat 10            how often each fault comes, at least; default 1
//   npm run test:shares -- --sabotage             run the known-wrong variants: passes when every scenario with load finds them out
//   npm run test:shares -- --mount plain          mount with the system's default options instead of the advised ones, or with those given
//   npm run test:shares -- --keep                 keep the folder with logs, exports and compiled code also after a success
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "holdfast-shares-"));
copyFileSync(join(root, "package.json"), join(scratch, "package.json"));
// For the dependencies of what is compiled.
symlinkSync(join(root, "node_modules"), join(scratch, "node_modules"));
copyFileSync(join(root, "test/shares/guest/init.sh"), join(scratch, "init.sh"));
chmodSync(join(scratch, "init.sh"), 0o755);
const config = {
  extends: join(root, "tsconfig.json"),
  // Not checked here: `npm run check` does, and a bed must also run beside unfinished work.
  compilerOptions: {
    noEmit: false,
    noCheck: true,
    rootDir: root,
    outDir: scratch,
    typeRoots: [join(root, "node_modules/@types")],
  },
  include: ["src", "harness", "test/shares"].map((folder) => join(root, folder)),
  exclude: ["src/**/*.test.ts", "harness/**/*.test.ts", "src/console/page"].map((path) => join(root, path)),
};
writeFileSync(join(scratch, "tsconfig.json"), JSON.stringify(config));
execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", join(scratch, "tsconfig.json")], { stdio: "inherit" });

const { runOutside } = await import(join(scratch, "test/shares/outside.js"));
process.exitCode = await runOutside(root, scratch, process.argv.slice(2));
