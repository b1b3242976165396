// Wildcards of policies and CORS rules.

/**
 * `*` matches any characters, `?` matches one. Takes at most time in proportion to the product of
 * both lengths.
 */
export function matches(pattern: string, text: string): boolean {
  let [at, star, mark] = [0, -1, 0];
  for (let index = 0; index < text.length;) {
    if (pattern[at] === "*") [star, mark, at] = [at, index, at + 1];
    else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[index]))
      [at, index] = [at + 1, index + 1];
    else if (star >= 0) [at, mark, index] = [star + 1, mark + 1, mark + 1];
    else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}
