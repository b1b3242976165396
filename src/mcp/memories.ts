// The memories of a session if the user passes no function that extracts them: each archive becomes
// one file that search finds.
import type { Archive } from "../files/index.ts";

export const memoriesDirectory = "memories";

/** The same archive gives the same path and text, so that it can be made again after a crash. */
export async function memoriesOf(archive: Archive): Promise<{ path: string; text: string }[]> {
  const { session, number, user, messages } = archive;
  const head = [`# Session ${session}, archive ${number}`, ...(user === undefined ? [] : [`User: ${user}`])];
  const body = messages.map(({ role, content, at }) => `## ${role}${at === undefined ? "" : `, ${at}`}\n\n${content}`);
  return [
    { path: `${memoriesDirectory}/${nameOf(session)}/${number}.md`, text: `${[...head, ...body].join("\n\n")}\n` },
  ];
}

/** Other programs may give a session an id that leads elsewhere as a path. */
function nameOf(session: string): string {
  return encodeURIComponent(session).replace(/^\.+/, (dots) => "%2E".repeat(dots.length));
}
