package api

import (
	"net/http"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Codes that only this package gives: what is wrong with a request before anyone asks
// what it means. The others are those of package agent.
const (
	codeUnauthorized     agent.Code = "unauthorized"           // no token, or not ours
	codeLoginCode        agent.Code = "login_code_invalid"     // unknown, used or expired
	codeHost             agent.Code = "host_not_allowed"       // a name this daemon does not answer to
	codeOrigin           agent.Code = "origin_not_allowed"     // another site's page is asking
	codeRouteNotFound    agent.Code = "route_not_found"        // no such path
	codeMethod           agent.Code = "method_not_allowed"     // the path has other methods
	codeBodyTooLarge     agent.Code = "body_too_large"         // above the operation's limit
	codeMediaType        agent.Code = "unsupported_media_type" // a body must be JSON
	codeInvalidJSON      agent.Code = "invalid_json"           // not JSON at all
	codeValidation       agent.Code = "validation_failed"      // JSON, but not what the schema asks for
	codeNotAcceptable    agent.Code = "not_acceptable"         // only JSON is spoken
	codeBodyTimeout      agent.Code = "body_timeout"           // the body did not come in time
	codeUpgradeRequired  agent.Code = "upgrade_required"       // this path is a WebSocket
	codeNotReady         agent.Code = "not_ready"              // recovery is still running
	codeTooManyLoginCode agent.Code = "too_many_login_codes"   // wait for one to end
)

// statuses is the one table that gives each code its HTTP status.
var statuses = map[agent.Code]int{
	agent.CodeInvalid:             http.StatusBadRequest,
	agent.CodeNotFound:            http.StatusNotFound,
	agent.CodeConflict:            http.StatusConflict,
	agent.CodeTurnSettled:         http.StatusConflict,
	agent.CodeTurnCanceling:       http.StatusConflict,
	agent.CodeSessionBusy:         http.StatusConflict,
	agent.CodeSessionDeleted:      http.StatusNotFound,
	agent.CodeUnknownOwner:        http.StatusConflict,
	agent.CodeRootSettlesByGate:   http.StatusConflict,
	agent.CodeUnaskedAfterCancel:  http.StatusConflict,
	agent.CodeGuidanceUnsupported: http.StatusConflict,
	agent.CodeChildInput:          http.StatusConflict,
	agent.CodeCancelUnsupported:   http.StatusConflict,
	agent.CodeInteractionAnswered: http.StatusConflict,
	agent.CodeInteractionGone:     http.StatusConflict,
	agent.CodeInvalidAnswer:       http.StatusUnprocessableEntity,
	agent.CodeProviderUnavailable: http.StatusFailedDependency,
	agent.CodeProviderGone:        http.StatusConflict,
	agent.CodeProviderRefused:     http.StatusBadGateway,
	agent.CodeTimeout:             http.StatusGatewayTimeout,
	agent.CodeDaemonRestart:       http.StatusServiceUnavailable,
	agent.CodeDaemonStopping:      http.StatusServiceUnavailable,
	agent.CodeUnavailable:         http.StatusServiceUnavailable,
	agent.CodeInternal:            http.StatusInternalServerError,

	codeUnauthorized:     http.StatusUnauthorized,
	codeLoginCode:        http.StatusUnauthorized,
	codeHost:             http.StatusMisdirectedRequest,
	codeOrigin:           http.StatusForbidden,
	codeRouteNotFound:    http.StatusNotFound,
	codeMethod:           http.StatusMethodNotAllowed,
	codeBodyTooLarge:     http.StatusRequestEntityTooLarge,
	codeMediaType:        http.StatusUnsupportedMediaType,
	codeInvalidJSON:      http.StatusBadRequest,
	codeValidation:       http.StatusUnprocessableEntity,
	codeNotAcceptable:    http.StatusNotAcceptable,
	codeBodyTimeout:      http.StatusRequestTimeout,
	codeUpgradeRequired:  http.StatusUpgradeRequired,
	codeNotReady:         http.StatusServiceUnavailable,
	codeTooManyLoginCode: http.StatusTooManyRequests,
}

// statusOf returns the status of a code; a code nobody listed is our own fault.
func statusOf(code agent.Code) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// codeOf names what the HTTP layer itself refuses, by the status it chose.
func codeOf(status int) agent.Code {
	switch status {
	case http.StatusBadRequest:
		return agent.CodeInvalid
	case http.StatusUnauthorized:
		return codeUnauthorized
	case http.StatusForbidden:
		return codeOrigin
	case http.StatusNotFound:
		return codeRouteNotFound
	case http.StatusMethodNotAllowed:
		return codeMethod
	case http.StatusNotAcceptable:
		return codeNotAcceptable
	case http.StatusRequestTimeout:
		return codeBodyTimeout
	case http.StatusRequestEntityTooLarge:
		return codeBodyTooLarge
	case http.StatusUnsupportedMediaType:
		return codeMediaType
	case http.StatusUnprocessableEntity:
		return codeValidation
	case http.StatusUpgradeRequired:
		return codeUpgradeRequired
	case http.StatusServiceUnavailable:
		return agent.CodeUnavailable
	}
	return agent.CodeInternal
}
