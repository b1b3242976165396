// Compares the files of a tree with what is indexed of them.
import type { Cancel } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import type { Document } from "../documents/document.ts";
import type { ListOptions } from "../model/file-tree.ts";
import type { IndexSide } from "../index-side.ts";
import { judgeContent } from "../search/foreign-changes.ts";
import { findUnusable } from "../tree/unusable-entry.ts";

export interface CompareOptions extends Cancel, Pick<ListOptions, "onProblem"> {
  readonly repair?: boolean;
}

export interface ComparedFile {
  readonly path: string;
  readonly isIndexed: boolean;
  /** True if no change by Holdfast brought its content. */
  readonly isForeign?: boolean;
  /** Why the file is unreadable. */
  readonly problem?: string;
}

export async function* compare(
  side: Pick<IndexSide, "derived" | "follower" | "announce">,
  { signal, repair = false, onProblem }: CompareOptions,
): AsyncGenerator<ComparedFile> {
  const { derived } = side;
  const { reader, documents } = derived;
  for await (const { path, directory } of reader.list("", { deep: true, signal, onProblem })) {
    if (directory) continue;
    let stamp: string | undefined;
    try {
      stamp = await derived.findStamp(path);
    } catch (error) {
      const problem = findUnusable(error) ?? (isHoldfastError(error, "IO_ERROR") ? error.message : undefined);
      if (problem === undefined) throw error;
      yield { path, isIndexed: false, problem };
      continue;
    }
    const find = (): Promise<Document | undefined> => documents.findNewest(path);
    const isKnown = stamp === undefined || (await find())?.stamp === stamp;
    const verdict =
      isKnown || stamp === undefined ? "explained" : (await judgeContent(side, path, stamp, find)).verdict;
    const isIndexed = verdict === "explained";
    if (!isIndexed && repair) await side.announce({ kind: "written", path });
    yield { path, isIndexed, isForeign: verdict === "foreign" };
  }
}
