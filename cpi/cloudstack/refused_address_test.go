// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// retryWhileBusy repeats rounds while the cloud is busy, and returns how often addresses were associated.
func (s *scene) retryWhileBusy() (associations int) {
	s.t.Helper()
	s.sim.Calls()
	for range 30 {
		p, err := s.round(false)
		if err == nil && p.Done() {
			for _, command := range s.sim.Calls() {
				if command == "associateIpAddress" {
					associations++
				}
			}
			return associations
		}
		s.Expect(err == nil || errors.Is(err, loadbalancer.ErrBusy)).To(BeTrue(), "%v", err)
	}
	s.t.Fatal("it does not converge")
	return 0
}

func TestAnotherAddressIsChosenInsteadOfOneInQuarantine(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.converge(false)
	chosen := s.allocated()[0]
	s.converge(true)
	s.sim.Quarantine(chosen[:len(chosen)-1])
	s.intent = nil

	s.Expect(s.retryWhileBusy()).To(Equal(2), "it is tried once")

	s.Expect(s.allocated()).To(And(HaveLen(1), Not(ContainElement(chosen))))
	s.Expect(s.intent).To(HaveLen(1), "the rejected address is no longer intended")
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestTheCloudChoosesAnAddressAfterManyRejections(t *testing.T) {
	const usable = "203.0.113.7"
	s := newScene(t, cloudstacksim.Options{}, "")
	s.sim.AddAddresses(addresses(50)...)
	for _, a := range s.sim.Objects(cloudstacksim.Addresses) {
		if a["ipaddress"] != usable {
			s.sim.Quarantine(fmt.Sprint(a["ipaddress"]))
		}
	}

	s.Expect(s.retryWhileBusy()).To(BeNumerically("<=", 6))

	s.Expect(s.allocated()).To(Equal([]string{usable + "*"}))
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestARejectedAddressIsRetriedLater(t *testing.T) {
	const only = "203.0.113.7"
	clock := clocktesting.NewFakeClock(time.Now())
	s := newScene(t, cloudstacksim.Options{}, "")
	s.clock = clock
	s.restart()
	s.sim.Delete(cloudstacksim.Addresses, func(o cloudstacksim.Object) bool { return o["ipaddress"] != only })
	s.sim.Quarantine(only)
	_, err := s.round(false)
	s.Expect(err).To(MatchError(loadbalancer.ErrBusy))
	s.Expect(s.steps(false)).To(ContainElement("associate a public address with network nodes"))

	clock.Step(2 * time.Hour)

	s.Expect(s.steps(false)).To(ContainElement("associate the public address " + only + " with network nodes"))
}

func TestARequestedAddressInQuarantineIsReported(t *testing.T) {
	const wanted = "203.0.113.7"
	s := newScene(t, cloudstacksim.Options{}, "")
	s.annotate("address", wanted)
	s.sim.Quarantine(wanted)

	for range 2 {
		_, err := s.round(false)
		s.Expect(err).To(MatchError(loadbalancer.ErrRefused))
		s.Expect(err).To(MatchError(ContainSubstring("quarantine")))
	}

	s.Expect(s.allocated()).To(BeEmpty())
}

func TestAnAccountLimitDoesNotMarkAddressesAsRejected(t *testing.T) {
	for _, limit := range []int{532, 535} {
		s := newScene(t, cloudstacksim.Options{}, "")
		planned := s.steps(false)
		s.sim.Fail(cloudstacksim.Fault{Command: "associateIpAddress", Code: limit})

		_, err := s.round(false)

		s.Expect(err).To(MatchError(loadbalancer.ErrRefused))
		s.Expect(s.steps(false)).To(Equal(planned), "another address would not help")
		s.Expect(slices.Contains(s.sim.Calls(), "associateIpAddress")).To(BeTrue())
	}
}
