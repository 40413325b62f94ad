"use strict";
// Puts the page of an inspection together.

function head() {
  byId("facts").textContent = [data.checkpoint, count(data.tokens.length, "token"),
    isNumber(data.loss) ? `loss ${fixed(data.loss, 4)} nats a token` : null,
    isNumber(data.gradient_norm) ? `gradient norm ${general(data.gradient_norm)}` : null].filter(Boolean).join(" · ");
}

function text() {
  byId("tokens").replaceChildren(...data.tokens.map((token, place) =>
    element("li", {title: `token ${place}, id ${data.token_ids[place]}`}, token)));
  const sum = data.residual_sum;
  byId("sum").textContent = sum.reason ? `The last stream is no sum of writes: ${sum.reason}.` :
    `Sum of writes: embedding plus all writes differs from the last stream by at most ${general(sum.difference)}, ` +
    `${general(sum.relative)} of its largest value ${general(sum.largest)}.` +
    (isNumber(data.embedding.write_logit) ? ` To the next token's logit, ${signed(data.next_token_logit, 3)} above ` +
      `the mean of all, the embedding adds ${signed(data.embedding.write_logit, 3)}.` : "");
  byId("no-loss").textContent = data.no_loss ? `No loss and no gradients: ${data.no_loss}.` : "";
}

head();
text();
attention();
layerCharts();
layerTable();
// Scripts are done; the frame after this one has been painted when the second callback comes.
requestAnimationFrame(() => setTimeout(() => {
  document.documentElement.dataset.readyMs = Math.round(performance.now());
}, 0));
