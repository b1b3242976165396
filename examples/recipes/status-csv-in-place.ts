// Stations that change one file, each its own line, and lose none of the others.
import { openFiles } from "holdfast/files";

const files = await openFiles(process.argv[2] ?? "shared", { index: false });
const report = (station: string, state: string) =>
  files.updateText("status.csv", (text) => {
    const [head, ...lines] = (text ?? "station,state\n").trimEnd().split("\n");
    const others = lines.filter((line) => !line.startsWith(`${station},`));
    return `${[head, ...[...others, `${station},${state}`].sort()].join("\n")}\n`;
  });

await Promise.all([report("press", "busy"), report("oven", "heating")]);
await report("press", "idle");
process.stdout.write(await files.readText("status.csv"));
await files.close();
