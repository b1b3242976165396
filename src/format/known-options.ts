// Which options a call has. A misspelt one would be ignored without a word, and a program in
// JavaScript has no compiler that finds it.

/** Every option of `O`, so that a new one does not compile before it is known here. */
export type OptionNames<O> = { readonly [Name in keyof Required<O>]: true };

/** TypeError naming the option that `call` does not have, or saying that the options are none. */
export function checkOptions<O extends object>(call: string, options: O | undefined, names: OptionNames<O>): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${call}: options must be an object, not ${String(options)}.`);
  for (const name of Object.keys(options))
    if (!Object.hasOwn(names, name)) {
      const known = Object.keys(names).join(", ");
      throw new TypeError(`${call}: there is no option ${JSON.stringify(name)}; there are ${known}.`);
    }
}
