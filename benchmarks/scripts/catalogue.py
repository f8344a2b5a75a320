"""The scripts by set and name."""

from __future__ import annotations

import language
import learning
import moving
import reinforcement
import science
import sequences
import vision

SCRIPTS = {
    function.__name__: function
    for function in (
        language.word_language_model,
        language.nano_gpt,
        language.padded_batches,
        reinforcement.policy_gradient,
        reinforcement.deep_q_learning,
        reinforcement.proximal_policy,
        vision.digits_classifier,
        vision.variational_autoencoder,
        vision.diffusion,
        vision.mixup_and_average,
        science.time_series,
        science.physics_informed,
        science.molecules,
        science.gaussian_process,
        science.matrix_factorization,
        science.hamiltonian_monte_carlo,
        science.neural_differential_equation,
        sequences.character_network,
        sequences.translation,
        sequences.masked_language_model,
        sequences.low_rank_adaptation,
        sequences.tagging,
        learning.adversarial,
        learning.contrastive,
        learning.triplets,
        learning.distillation,
        learning.meta_learning,
        learning.ensemble,
        learning.averaged_weights,
        learning.tabular,
    )
}

SETS = {"scripts": SCRIPTS, "moving": moving.MOVING}
