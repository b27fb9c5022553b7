"""Gradient transport: how far a field's values, put on the nodes of a graph, set each other off.

    make_graph, load_graph    the Barabasi-Albert graph, as arrays; the same, kept on disk
    run_cascade               a field on a graph -> size, duration, efficiency
    check_field, place_nodes  what a field must be; how its values come onto the nodes
    null_field, null_effects  fields of no structure; what distribution and places each add
    measure_field             a field and its nulls, a row a cascade; measure_sizes: samples of several sizes
    fit_exponents             cascades of several sizes -> D, z, beta, delta
    measure_study             models of several sizes over a training; exponents_by_step, effects_by_step
    measure_sensitivity       how exponents move with the settings that sources leave open
    associate                 a channel over training against a curve, such as the loss; associate_study: all of a study

numpy, pandas and scipy only.
"""

from toydepth.transport.association import Association, Correlation, associate
from toydepth.transport.cascade import Cascade, find_threshold, run_cascade
from toydepth.transport.channels import associate_study
from toydepth.transport.exponents import Exponents, Slope, fit_exponents
from toydepth.transport.fields import FieldCheck, FieldProblem, check_field, place_nodes
from toydepth.transport.graph import Graph, make_graph
from toydepth.transport.nulls import NULLS, Effect, null_effects, null_field
from toydepth.transport.probe import KINDS, ProbeSettings, measure_field, measure_sizes, slopes_by_seed
from toydepth.transport.sensitivity import measure_sensitivity
from toydepth.transport.stored import load_graph
from toydepth.transport.study import StudyField, effects_by_step, exponents_by_step, measure_study

__all__ = [
    "KINDS",
    "NULLS",
    "Association",
    "Cascade",
    "Correlation",
    "Effect",
    "Exponents",
    "FieldCheck",
    "FieldProblem",
    "Graph",
    "ProbeSettings",
    "Slope",
    "StudyField",
    "associate",
    "associate_study",
    "check_field",
    "effects_by_step",
    "exponents_by_step",
    "find_threshold",
    "fit_exponents",
    "load_graph",
    "make_graph",
    "measure_field",
    "measure_sensitivity",
    "measure_sizes",
    "measure_study",
    "null_effects",
    "null_field",
    "place_nodes",
    "run_cascade",
    "slopes_by_seed",
]
