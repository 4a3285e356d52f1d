// Makes `src/api/schema.d.ts` from the OpenAPI document of a server that runs, or of a file.
//   npm run schema -- http://127.0.0.1:7411
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const from = process.argv[2] ?? process.env.BELLJAR_URL ?? 'http://127.0.0.1:7411';

async function document() {
  if (!from.startsWith('http')) return JSON.parse(await readFile(from, 'utf8'));
  const answer = await fetch(new URL('/v1/openapi.json', from));
  if (!answer.ok) throw new Error(`${from} answered ${answer.status}`);
  return answer.json();
}

const head = '// Made by `npm run schema` from the OpenAPI document of the server. Do not edit.\n\n';
const text = astToString(await openapiTS(await document(), { alphabetize: true }));
await writeFile(new URL('../src/api/schema.d.ts', import.meta.url), head + text);
