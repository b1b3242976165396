// Checks option names. A misspelt option would be ignored silently, and a JavaScript program has no
// compiler that finds it.

/** Every option of `O`: a new option does not compile until it is listed. */
export type OptionNames<O> = { readonly [Name in keyof Required<O>]: true };

/** Throws TypeError if `call` does not have one of the options, or if the options are not an object. */
export function checkOptions<O extends object>(call: string, options: O | undefined, names: OptionNames<O>): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${call}: options must be an object, not ${String(options)}.`);
  for (const name of Object.keys(options))
    if (!Object.hasOwn(names, name)) {
      const known = Object.keys(names).join(", ");
      throw new TypeError(`${call}: there is no option ${JSON.stringify(name)}; the options are ${known}.`);
    }
}
