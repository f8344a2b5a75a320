"""Parts of training loops: activations, losses, optimizers, schedules."""

from __future__ import annotations

#: The last activation is only for images.
ACTIVATIONS = (
    "nn.ReLU()", "nn.GELU()", "nn.SiLU()", "nn.Tanh()", "nn.Mish()", "nn.ELU()",
    "nn.LeakyReLU(0.1)", "nn.PReLU()", "nn.Softplus()", "nn.Hardswish()", "nn.CELU(0.5)",
    "nn.SELU()", "nn.Hardtanh()", "nn.LogSigmoid()", "nn.Softsign()", "nn.Tanhshrink()",
    "nn.GELU(approximate='tanh')", "nn.Hardsigmoid()", "nn.Softshrink(0.1)", "nn.ReLU(inplace=True)",
)  # fmt: skip

#: `{values}`, `{bits}` (0 or 1) and `{signs}` (-1 or 1) have the result's shape.
LOSSES = (
    "F.cross_entropy({result}, {classes})",
    "F.cross_entropy({result}, {classes})",
    "F.cross_entropy({result}, {classes}, label_smoothing=0.1, ignore_index=0)",
    "F.cross_entropy({result}, {values}.softmax(1))",
    "F.cross_entropy({result}, {classes}, weight=noise(7, [{count}], torch.float64).abs(), reduction='sum')",
    "F.nll_loss({result}.log_softmax(1), {classes}, ignore_index=1)",
    "F.smooth_l1_loss({result}, {values})",
    "F.huber_loss({result}, {values}, delta=0.5)",
    "F.mse_loss({result}, {values})",
    "F.l1_loss({result}, {values}, reduction='none').mean(1).sum()",
    "F.kl_div({result}.log_softmax(1), {values}.softmax(1), reduction='batchmean')",
    "F.kl_div({result}.log_softmax(1), {values}.log_softmax(1), reduction='sum', log_target=True)",
    "F.poisson_nll_loss({result}, {bits})",
    "F.gaussian_nll_loss({result}, {values}, {values}.exp())",
    "F.soft_margin_loss({result}, {signs})",
    "F.hinge_embedding_loss({result}, {signs}, margin=0.5)",
    "F.multi_margin_loss({result}, {classes})",
    "F.multilabel_soft_margin_loss({result}, {bits})",
    "F.cosine_embedding_loss({result}, {values}, {signs}[:, 0])",
    "F.margin_ranking_loss({result}, {values}, {signs}, margin=0.1)",
    "F.triplet_margin_loss({result}, {values}, {values}.flip(0) + 0.3)",
    "F.binary_cross_entropy_with_logits({result}, {bits})",
    "F.binary_cross_entropy_with_logits({result}, {bits}, pos_weight=noise(3, [{count}], torch.float64).abs())",
    "F.binary_cross_entropy({result}.sigmoid(), {bits}, weight={values}.abs())",
    "(1 - F.cosine_similarity({result}, {values})).mean()",
    "torch.cdist({result}, {values}).mean()",
    "{result}.logsumexp(1).mean() - ({result} * {values}).sum(1).mean()",
)
#: Parts of the text of layers whose attention has a bias of keys.
ATTENTION = ("Attend(", "MultiheadAttention(", "TransformerEncoderLayer(")
OPTIMIZERS = (
    "SGD({p}, lr=0.05)", "SGD({p}, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "SGD({p}, lr=0.05, momentum=0.5, dampening=0.1, foreach=False)", "Adam({p}, lr=0.01)",
    "SGD({p}, lr=0.02, maximize=True, foreach=True)", "SGD({p}, lr=0.05, momentum=0.9, fused=True)",
    "Adam({p}, lr=0.01, amsgrad=True, foreach=True)", "Adam({p}, lr=0.01, fused=True)",
    "Adam({p}, lr=0.01, maximize=True, weight_decay=0.1)", "Adam({p}, lr=torch.tensor(0.01), foreach=False)",
    "AdamW({p}, lr=0.01, foreach=False)", "AdamW({p}, lr=0.01)", "AdamW({p}, lr=0.01, amsgrad=True, fused=True)",
    "RMSprop({p}, lr=0.01, centered=True)", "RMSprop({p}, lr=0.01, momentum=0.5, weight_decay=0.1)",
    "Adagrad({p}, lr=0.05)", "Adagrad({p}, lr=0.05, lr_decay=0.1, fused=True)", "Adadelta({p})", "Adamax({p}, lr=0.01)",
    "NAdam({p}, lr=0.01)", "NAdam({p}, lr=0.01, decoupled_weight_decay=True, weight_decay=0.1)",
    "RAdam({p}, lr=0.01)", "ASGD({p}, lr=0.01, foreach=False)", "Rprop({p}, lr=0.01)", "Adafactor({p}, lr=0.01)",
)  # fmt: skip
SCHEDULERS = (
    "StepLR(optimizer, 2, 0.5)", "ExponentialLR(optimizer, 0.9)", "CosineAnnealingLR(optimizer, 5)",
    "OneCycleLR(optimizer, 0.1, total_steps=40, cycle_momentum=False)", "LambdaLR(optimizer, lambda step: 1 / (1 + step))",
    "MultiStepLR(optimizer, [1, 3])", "LinearLR(optimizer, 0.2, total_iters=3)", "PolynomialLR(optimizer, 6, 2)",
    "CyclicLR(optimizer, 0.01, 0.1, 2, cycle_momentum=False)", "CosineAnnealingWarmRestarts(optimizer, 2)",
    "ConstantLR(optimizer, 0.5, 2)",
)  # fmt: skip
