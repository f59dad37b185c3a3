// Package lb says what a load balancer on an edge gateway is and how it comes to be: what is wanted ([Desired]) and what is there
// ([Observed]) make a [Plan], an ordered list of steps. It is pure: it talks to nobody, knows neither Kubernetes nor the calls of VCD,
// and gives the same plan for the same input. Whoever carries plans out observes, makes a plan, runs its steps and begins again until
// the plan is empty; to tear down is to plan for [Desired.Absent]. A plan may end at any step: the next one goes on from what is there.
package lb
