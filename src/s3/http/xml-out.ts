// XML that the gateway answers with. Elements are nested arrays and records of texts: what is a text
// is escaped, so that no key or tag can become markup.

/** An element's content: a text, elements by name (repeated for a list), or nothing. */
export type XmlContent =
  string | number | boolean | Date | undefined | { readonly [name: string]: XmlContent | readonly XmlContent[] };

const header = '<?xml version="1.0" encoding="UTF-8"?>\n';
const namespace = "http://s3.amazonaws.com/doc/2006-03-01/";

/** A whole document. Errors have no namespace. */
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

/** An element whose content is undefined is left out. A name may carry attributes: `Grantee xsi:type="Group"`. */
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

/** Characters that XML 1.0 cannot carry at all become U+FFFD: a client that has such keys asks for `encoding-type=url`. */
function escapeXml(text: string): string {
  return text.replace(/[&<>"\r]/g, (character) => escapes[character] ?? "").replace(notInXml, "\ufffd");
}
