"""What the proofs and simulations of the chapters are checked with: exact laws by enumeration, bounds, regret."""

from cfltr_book.theory.convergence import convergence_bound, learning_rate_for, second_moment, steps_for_accuracy
from cfltr_book.theory.exact import enumerate_logs, expectation, mean_and_variance
from cfltr_book.theory.proofs import exact_runs, proof_steps
from cfltr_book.theory.regret import evaluation_steps, regret
from cfltr_book.theory.variances import ips_variance

__all__ = [
    "convergence_bound",
    "enumerate_logs",
    "evaluation_steps",
    "exact_runs",
    "expectation",
    "ips_variance",
    "learning_rate_for",
    "mean_and_variance",
    "proof_steps",
    "regret",
    "second_moment",
    "steps_for_accuracy",
]
