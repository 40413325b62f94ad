// The greedy continuation of a GGUF model by node-llama-cpp, as a JSON list of ids.
//
//   node scripts/peers/gguf_greedy.mjs CLIENTS MODEL.gguf COUNT ID...     CLIENTS: the folder of scripts/get_clients
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [clients, path, count, ...ids] = process.argv.slice(2);
const found = createRequire(clients + "/").resolve("node-llama-cpp");
const {getLlama} = await import(pathToFileURL(found));
const llama = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: 1});
const model = await llama.loadModel({modelPath: path});
const context = await model.createContext({contextSize: 256, sequences: 1, threads: 1});
const tokens = [];
for await (const token of context.getSequence().evaluate(ids.map(Number), {temperature: 0})) {
  tokens.push(token);
  if (tokens.length >= Number(count)) {
    break;
  }
}
console.log(JSON.stringify(tokens));
process.exit(0);
