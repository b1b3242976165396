// Finds out how Windows must start a command: `npm` is a batch file there, which only cmd.exe can run.
import { win32 } from "node:path";
import { openPorts } from "../../durable/index.ts";

export interface WindowsCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** True if `args` are parts of a command line that must not be quoted again. */
  readonly isVerbatim: boolean;
}

export interface WindowsSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  readonly exists: (path: string) => Promise<boolean>;
}

const extensionsDefault = ".COM;.EXE;.BAT;.CMD";

/**
 * Returns the command as it must be started. A program stays as it is, and so does a name that is not found. Throws
 * a RangeError if an argument cannot be passed to a batch file.
 */
export async function commandOnWindows(
  words: readonly string[],
  surroundings?: WindowsSurroundings,
): Promise<WindowsCommand> {
  const [name = "", ...args] = words;
  const where = surroundings ?? (await own());
  const path = await findCommand(name, where);
  if (path === undefined || !/\.(bat|cmd)$/i.test(path)) return { file: name, args, isVerbatim: false };
  const line = [path, ...args].map(quoteForBatchFile).join(" ");
  // /d: no commands from the registry. /e:on: see below. /v:off: "!" is a character. /s: only the outer quotes go.
  return {
    file: valueOf("ComSpec", where) ?? "cmd.exe",
    args: ["/d", "/e:on", "/v:off", "/s", "/c", `"${line}"`],
    isVerbatim: true,
  };
}

async function own(): Promise<WindowsSurroundings> {
  const directory = process.cwd();
  const { disk } = await openPorts(directory);
  return { environment: process.env, directory, exists: async (path) => await disk.canOpen(path) };
}

/** Windows looks in the current directory first, then in those of PATH; in each with the extensions in their order. */
async function findCommand(name: string, surroundings: WindowsSurroundings): Promise<string | undefined> {
  const hasFolder = /[\\/:]/.test(name);
  const path = (valueOf("PATH", surroundings) ?? "").split(";").filter((folder) => folder !== "");
  const folders = hasFolder ? [""] : ["", ...path];
  const extensions = (valueOf("PATHEXT", surroundings) ?? extensionsDefault).split(";");
  const endings = win32.extname(name) === "" ? extensions : ["", ...extensions];
  for (const folder of folders)
    for (const ending of endings) {
      const found = win32.resolve(surroundings.directory, folder, `${name}${ending.toLowerCase()}`);
      if (await surroundings.exists(found)) return found;
    }
  return undefined;
}

/** The names of variables of Windows are case-insensitive; those of a copy of `process.env` are not. */
function valueOf(name: string, { environment }: WindowsSurroundings): string | undefined {
  const found = Object.keys(environment).find((each) => each.toUpperCase() === name.toUpperCase());
  return found === undefined ? undefined : environment[found];
}

/**
 * Quotes an argument so that cmd.exe passes it on unchanged, whatever it contains: a quote is doubled, so that cmd.exe
 * never takes the rest for its own text. `%` is followed by an expansion of nothing, so that it never begins a variable.
 */
function quoteForBatchFile(argument: string): string {
  if (/[\r\n\0]/.test(argument))
    throw new RangeError(`${JSON.stringify(argument)} has a line break, which no batch file can get`);
  const text = argument.replaceAll(
    /(\\*)("|$)/g,
    (_, slashes: string, quote: string) => slashes + slashes + quote + quote,
  );
  return `"${text.replaceAll("%", "%%cd:~,%")}"`;
}
