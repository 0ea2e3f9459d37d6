"""Where propensities come from: interventions, and estimates of the examination curve from logs.

**One question.**  A document d that stands at rank k is clicked with probability θ_k γ_d: it must be examined, and it
must attract.  A log holds n_dk displays and c_dk clicks.  What is θ_k/θ_1?  Clicks show ratios of θ alone, and only
between ranks that something links: a document that was shown at both, or a model of γ.

**One regression.**  The logarithm of the expected clicks, log n_dk + log θ_k + log γ_d, is a *linear* predictor with an
effect for each rank and an effect for each document.  Nearly every estimator of this folder starts from this mean, with
another answer to one question: *what becomes of the γ_d, of which there are as many as documents?*  Three have another
mean, or no likelihood, and are named as such below: trust, the additive towers, and dual learning.

1. **They cancel.**  Of the clicks C_d of a document, those at rank k have the share n_dk θ_k / Σ_j n_dj θ_j, without
   γ_d: the conditional Poisson likelihood (:mod:`~cfltr_core.propensity.conditional_poisson`), a concave
   function of log θ.  Nothing is assumed of relevance.  Its class ``StratifiedPoisson`` takes any rows x of effects in
   place of those of the ranks, so that other questions are other columns:

   ==============================================  ==================================================================
   what is asked                                   what is added to the effects of the ranks
   ==============================================  ==================================================================
   one curve (``conditional_poisson``)             nothing
   few clicks (``shrunk_power``)                   a penalty on the distance from a power of the rank
   does the query matter (``contextual_curve``)    each rank times the features of the query
   is it one curve (``same_curve``)                each rank times the half that a document is in
   do clicks above matter (``clicks_above_test``)  a column with the clicks above
   ==============================================  ==================================================================

2. **They are summed over first.**  For two ranks, add up the clicks of the documents that were shown at both, weighted
   so that γ has the same sum at either rank (:mod:`~cfltr_core.propensity.interventional_sets`); the ratio of the sums
   is θ_k/θ_j.  It is close to 1: the score of 1 for one pair of ranks is Σ (c_k n_j − θ c_j n_k)/(n_k θ + n_j), and the
   harmonic weights are its root with θ = 1 in the divisor.  ``pivot`` takes the pairs with one rank,
   ``adjacent_chain`` those of neighbours (:mod:`~cfltr_core.propensity.harvesting`).  ``click_rates`` adds up all
   documents, whatever ranks they had: right on shuffled pages, and the naive control on all others.  ``all_pairs``
   (:mod:`~cfltr_core.propensity.all_pairs`) stands between 2 and 3: it adds up each pair of ranks, and maximises a
   likelihood of yes and no with one nuisance for each pair in place of one for each document.

3. **They are estimated, too** (:mod:`~cfltr_core.propensity.joint_models`), by the likelihood of yes and no: the mean
   is the same, but a display ends with a click or without one (Bernoulli and not Poisson), so that they do not
   cancel.  ``expectation_maximisation`` gives each document its own: with few displays of each these many numbers
   bend the curve.

4. **They are a function of features**: γ_d = g(x_d), with few parameters for all documents, so that ranks are
   compared also where no document moved, by an assumption.  ``regression_em`` (in the same module, by EM) and the
   product form of ``two_towers`` (:mod:`~cfltr_core.propensity.towers`, by its slope) climb the likelihood of 3.  The
   additive form adds the two on the logit scale, so that what it returns are ratios of odds.  ``dual_learning``
   (:mod:`~cfltr_core.propensity.dual_learning`) has no likelihood: of the clicks of a page it compares the share of
   each rank, and of each document, with the other divided out.  What they return is a
   :class:`~cfltr_core.propensity.joint_fits.JointFit`, which says what it assumes; ``assumption_range`` puts several
   side by side.

``trust_bias`` (:mod:`~cfltr_core.propensity.trust_bias`) adds a second number for each rank: clicks at rank k are a
line β_k γ_d + α_k of the attraction, since a trusted rank is clicked also for what does not attract.

**What goes in and comes out.**  :class:`~cfltr_core.propensity.strata.DisplayCounts` holds the terms (n, c) of each
*stratum*, a document of a query (in a period).  :mod:`~cfltr_core.propensity.identifiability` says which ranks the
strata link.  Where the strata are all that an estimator knows, what is not linked has no number but a sentence with a
remedy; those of 4 join such ranks by their assumption, and say so in a note.
:class:`~cfltr_core.propensity.curves.PropensityCurve` holds log θ_k/θ_1, a covariance that is clustered by query, and
the sentences.  :mod:`~cfltr_core.propensity.interventions` makes pages that link ranks on purpose, and says what these
cost.

**Which one?**  Documents moved: 1.  Few clicks at the deep ranks: 1 with a penalty.  To compare with the literature: 2.
One ranker, nothing moved: none of them knows; 4 gives a range.
"""
