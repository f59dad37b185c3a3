// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
)

// serviceAccountToken is the path of the pod's token, which is used if the credentials have none.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // A path.

// share clones a session that a service shares, because vCenter limits the number of logins.
func (c *connection) share(ctx context.Context, credentials Credentials) error {
	token := credentials.SharedToken
	if token == "" {
		data, err := os.ReadFile(serviceAccountToken)
		if err != nil {
			return fmt.Errorf("%w: no token for %s: %w", errCredentials, credentials.SharedSession, err)
		}
		token = strings.TrimSpace(string(data))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, credentials.SharedSession, nil)
	if err != nil {
		return fmt.Errorf("%w: the address of the shared session: %w", errCredentials, err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: c.client.DefaultTransport()}).Do(request)
	if proxy, ok := siteproxy.Explain(request, err); ok {
		return fmt.Errorf("requesting a shared session: %w", proxy)
	}
	if err != nil {
		return fmt.Errorf("requesting a shared session: %w", err)
	}
	if err := siteproxy.Refused(request, response); err != nil {
		_ = response.Body.Close()
		return fmt.Errorf("requesting a shared session: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		return fmt.Errorf("%w: %s answers %s", errCredentials, credentials.SharedSession, response.Status)
	}
	var ticket struct {
		Token string `json:"token"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&ticket)
	if err != nil || ticket.Token == "" || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s, without a ticket", credentials.SharedSession, response.Status)
	}
	return credentialError(c.session.CloneSession(ctx, ticket.Token))
}
