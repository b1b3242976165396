// A tree with wrapped collaborators. Known-wrong variants, and processes that stop half-way, replace single calls.
import type { Tree } from "../../../src/files/tree/tree.ts";
import type { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import type { RedoDraft } from "../../../src/locks/redo/draft.ts";

/** Returns an object that behaves like `target`, except for these members. */
export function wrapping<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get(from, name) {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name) as unknown;
      const value: unknown = Reflect.get(from, name, from);
      return typeof value === "function" ? (value.bind(from) as unknown) : value;
    },
  });
}

/** Returns a tree whose drafts have the members that `membersOf` returns. */
export function withDrafts(tree: Tree, membersOf: (draft: RedoDraft) => Partial<RedoDraft>): Tree {
  const wrapped = (locks: TablePathLocks): TablePathLocks =>
    wrapping(locks, {
      draft: async (...begun) => {
        const draft = await locks.draft(...begun);
        return wrapping(draft, membersOf(draft));
      },
    });
  return wrapping(tree, {
    locks: wrapped(tree.locks),
    locksFor: (within) => wrapped(tree.locksFor(within)),
  });
}

/** Returns a tree that commits by calling `commit`. */
export function withCommits(tree: Tree, commit: (draft: RedoDraft) => Promise<void>): Tree {
  return withDrafts(tree, (draft) => ({ commit: () => commit(draft) }));
}
