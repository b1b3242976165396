// XML in and out: what is refused, and that no text becomes markup.
import { describe, expect, it, test } from "vitest";
import { S3Error } from "../../src/s3/http/s3-error.ts";
import { parseXml, readXml } from "../../src/s3/http/xml-in.ts";
import { formatXml } from "../../src/s3/http/xml-out.ts";

const parse = (text: string): unknown => parseXml(Buffer.from(text), "Delete");

describe("XML from a client", () => {
  it("is read with or without a namespace or a prefix", () => {
    for (const text of [
      "<Delete><Object><Key>a&amp;b</Key></Object></Delete>",
      '<?xml version="1.0"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>a&#38;b</Key></Object></Delete>',
      '<s:Delete xmlns:s="x"><s:Object><s:Key><![CDATA[a&b]]></s:Key></s:Object></s:Delete>',
    ])
      expect(parseXml(Buffer.from(text), "Delete").find("Object")?.getText("Key")).toBe("a&b");
  });

  const refused: Readonly<Record<string, string>> = {
    empty: "",
    "another root": "<Tagging/>",
    "not closed": "<Delete><Object></Delete>",
    "text outside the root": "<Delete/>x",
    "an unknown entity": "<Delete>&x;</Delete>",
    "a document type": "<!DOCTYPE Delete []><Delete/>",
    "an entity bomb": '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Delete>&b;</Delete>',
    "an external entity": '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><Delete>&x;</Delete>',
    "more than ten levels": `<Delete>${"<a>".repeat(10)}${"</a>".repeat(10)}</Delete>`,
    "too many elements": `<Delete>${"<a/>".repeat(60_001)}</Delete>`,
    "two roots": "<Delete/><Delete/>",
    "too many attributes": `<Delete ${Array.from({ length: 10_001 }, (_, index) => `a${index}=""`).join(" ")}/>`,
    "no root for a long time": `<!--${"x".repeat(130_000)}--><Delete/>`,
  };
  it.each(Object.entries(refused))("is refused as MalformedXML: %s", (_, text) => {
    expect(() => parse(text)).toThrow(S3Error);
    expect(() => parse(text)).toThrow(/well-formed/);
  });

  it("does not block other requests while a large document is read, however it is split", async () => {
    let [turns, isOver] = [0, false];
    const turn = (): void => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    // Two code units each, of which a cut may part the first from the second.
    const text = "\u{1f600}".repeat(1_000_000);
    const root = await readXml(Buffer.from(`<Delete>x${text}</Delete>`), "Delete");
    isOver = true;
    expect(root.text === `x${text}`).toBe(true);
    expect(turns).toBeGreaterThan(20);
    await expect(readXml(Buffer.from(`<Delete>${text}`), "Delete")).rejects.toThrow(S3Error);
  });

  it("is refused if it is not UTF-8", () => {
    expect(() => parseXml(Buffer.from([0x3c, 0xff, 0x3e]), "Delete")).toThrow(S3Error);
  });
});

test("text is returned unchanged, even if it looks like markup", () => {
  const key = `<Key>&amp;"'\r\n\t]]>ä`;
  const text = formatXml("Delete", { Object: [{ Key: key }, { Key: "b", Size: 0, Last: undefined }] });
  const [first, second] = parseXml(Buffer.from(text), "Delete").all("Object");
  expect(first?.getText("Key")).toBe(key);
  expect(second?.getText("Size")).toBe("0");
  expect(second?.find("Last")).toBe(undefined);
  expect(formatXml("A", { Key: "\u0001\ufffe" })).toContain("<Key>\ufffd\ufffd</Key>");
});
