// SPDX-License-Identifier: Apache-2.0

package vcdsimtest_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

func TestOneLineStartsASimulator(t *testing.T) {
	sim := vcdsimtest.Start(t, vcdsim.Config{Seed: 1})

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(sim.CA())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:    pool,
		MinVersion: tls.VersionTLS12,
	}}}
	res, err := client.Get(sim.URL() + "/api/versions")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Errorf("it answered %s", res.Status)
	}
	if got := len(sim.State().Model.Orgs); got != 2 {
		t.Errorf("%d organizations", got)
	}
}
