// The documents that the process tests of the hand-off pass on: which ones there are, and what is
// to be done with each.

/** What a ticket says about its document, as its `meta`. */
export interface Document {
  readonly key: string;
  /** Its text lies beside its ticket. */
  readonly isLarge: boolean;
  readonly group?: string;
  /** The key of the document before it in its group. */
  readonly before?: string;
  /** It kills each worker that opens it. */
  readonly isPoison: boolean;
  /** Its handler throws the first time. */
  readonly isRetried: boolean;
  readonly outputs: readonly string[];
  /** Its handler sends a ticket to the next box. */
  readonly isSent: boolean;
}

export interface DocumentPlan {
  /** Publications in all, those with a key that was used before among them. */
  readonly tickets: number;
  readonly producers: number;
  /** Which part of the publications repeats the key of another one. */
  readonly duplicates: number;
  readonly poisons: number;
}

/** More than a ticket takes up. */
const largeBytes = 70_000;
const groupsPerProducer = 2;

export function textOf({ key, isLarge }: Document): string {
  return `the text of ${key}`.padEnd(isLarge ? largeBytes : 0, ".");
}

/** What producer number `producer`, from 0, publishes, in this order. */
export function publicationsOf(plan: DocumentPlan, producer: number): Document[] {
  const own = documentsOf(plan, producer);
  const neighbours = documentsOf(plan, (producer + 1) % plan.producers).filter(isRepeatable);
  const all: Document[] = [];
  const repeatEvery = plan.duplicates === 0 ? Infinity : Math.round(1 / plan.duplicates) - 1;
  for (const [index, document] of own.entries()) {
    all.push(document);
    // About where the neighbour is now, so that both publish it at about the same time.
    const repeated = neighbours[Math.floor((index / own.length) * neighbours.length)];
    if ((index + 1) % repeatEvery === 0 && repeated !== undefined) all.push(repeated);
  }
  return all;
}

/** All documents, each once. */
export function allDocuments(plan: DocumentPlan): Document[] {
  return Array.from({ length: plan.producers }, (_, producer) => documentsOf(plan, producer)).flat();
}

/** A document of a group that another producer publishes would come before its turn. */
function isRepeatable({ group, isPoison }: Document): boolean {
  return group === undefined && !isPoison;
}

function documentsOf({ tickets, producers, duplicates, poisons }: DocumentPlan, producer: number): Document[] {
  const count = Math.round((tickets * (1 - duplicates)) / producers);
  const last = new Map<string, string>();
  return Array.from({ length: count }, (_, index) => {
    const key = `document ${producer}/${index}`;
    const group = index % 4 === 0 ? `group ${producer}/${(index / 4) % groupsPerProducer}` : undefined;
    const before = group === undefined ? undefined : last.get(group);
    if (group !== undefined) last.set(group, key);
    const isPoison = producer === 0 && poisonedIndexes(poisons).includes(index);
    return {
      key,
      isLarge: index % 10 === 3,
      ...(group === undefined ? {} : { group }),
      ...(before === undefined ? {} : { before }),
      isPoison,
      // One of a group, which goes back to its place, and one that waits to come due.
      isRetried: !isPoison && [8, 9].includes(index % 20),
      outputs: index % 3 === 0 ? ["receipt.txt", "copy.txt"] : [],
      isSent: index % 5 === 1,
    };
  });
}

/** The first and every second one is in a group. */
function poisonedIndexes(count: number): number[] {
  return Array.from({ length: count }, (_, number) => 20 + 20 * Math.floor(number / 2) + 5 * (number % 2));
}
