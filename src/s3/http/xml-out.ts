// XML that the gateway sends. Elements are nested arrays and records of texts. Every text is
// escaped, so no key or tag can become markup.

/** The content of an element: a text, elements by name (repeated for a list), or nothing. */
export type XmlContent =
  string | number | boolean | Date | undefined | { readonly [name: string]: XmlContent | readonly XmlContent[] };

const header = '<?xml version="1.0" encoding="UTF-8"?>\n';
const namespace = "http://s3.amazonaws.com/doc/2006-03-01/";

/** A complete document. Errors have no namespace. */
export function formatXml(
  root: string,
  content: XmlContent,
  { isError = false }: { readonly isError?: boolean } = {},
): string {
  const attribute = isError ? "" : ` xmlns="${namespace}"`;
  return `${header}<${root}${attribute}>${formatContent(content)}</${root}>`;
}

function formatContent(content: XmlContent): string {
  if (content === undefined) return "";
  if (content instanceof Date) return content.toISOString();
  if (typeof content === "object") return formatElements(content);
  return escapeXml(String(content));
}

/**
 * Omits elements whose content is undefined. A name may include attributes: `Grantee
 * xsi:type="Group"`.
 */
function formatElements(elements: { readonly [name: string]: XmlContent | readonly XmlContent[] }): string {
  let text = "";
  for (const [name, value] of Object.entries(elements))
    for (const content of Array.isArray(value) ? (value as readonly XmlContent[]) : [value as XmlContent])
      if (content !== undefined) text += `<${name}>${formatContent(content)}</${name.split(" ", 1)[0] ?? name}>`;
  return text;
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\r": "&#13;",
};

// oxlint-disable-next-line no-control-regex -- these are what XML 1.0 forbids
const notInXml = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/**
 * Characters that XML 1.0 cannot represent become U+FFFD. A client with such keys uses
 * `encoding-type=url`.
 */
function escapeXml(text: string): string {
  return text.replace(/[&<>"\r]/g, (character) => escapes[character] ?? "").replace(notInXml, "\ufffd");
}
